"""From a source to a committed dataset: plan the shards, write them, commit (part: make).

OUTPUT_DIR/
  Split-train/data_tfrecord-00000-of-00016   every child of a Split folder is data
  labels.txt                                 one label a line, in order
  index/index-00000-of-00018.parquet         one row for each record
  rejects.parquet  rejects.jsonl             one row for each rejected row
  SHA256SUMS                                 hashes of all files but itself
  dataset.json                               the commit, written last
  .attempt/TOKEN/journal.json                until then: all files that this run writes
"""
