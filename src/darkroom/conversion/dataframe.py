"""`df.tensorflow` on pandas DataFrames, whichever of pandas and darkroom is imported first."""

from __future__ import annotations

import importlib.util
import os
import sys
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import TYPE_CHECKING, Any

from darkroom.errors import UsageError
from darkroom.runtime.lazy_names import LazyModule
from darkroom.runtime.process import begin_at_call

if TYPE_CHECKING:
    from importlib.abc import Loader, MetaPathFinder

    import pandas as pd

    from darkroom.conversion import result
    from darkroom.dataset import schema as schemas
    from darkroom.dataset import splits
else:
    # Python looks for their methods only. In 3.11 importlib.abc loads tempfile, which takes long.
    Loader = MetaPathFinder = object
    # Loading them would make `import darkroom` slow.
    pd, result = LazyModule("pandas"), LazyModule("darkroom.conversion.result")
    schemas = LazyModule("darkroom.dataset.schema")
    splits = LazyModule("darkroom.dataset.splits")

ACCESSOR = "tensorflow"


class TensorFlowAccessor:
    """Converts the images that a DataFrame lists.

    The frame has a column with image paths (`image_uri`), and usually `split` and `label`; other
    columns become features under their own names.
    """

    def __init__(self, frame: pd.DataFrame) -> None:
        self._frame = frame

    @begin_at_call
    def to_tfrecord(
        self,
        output_dir: str | os.PathLike[str],
        *,
        columns: schemas.Schema | Mapping[str, Any] | str | None = None,
        label_map: Sequence[str] | str | os.PathLike[str] | None = None,
        split_ratios: splits.SplitRatios | str = "80/10/10",
        seed: int = 0,
        source_encoding: str = "utf-8",
        label_kind: str = "auto",
        merge_rows: str = "refuse",
        subfolders: str = "label",
        allowed_roots: Sequence[str | os.PathLike[str]] = (),
        exclude: str | os.PathLike[str] | None = None,
        image_check: str = "full",
        resize_short_side: int | None = None,
        encoding: str = "keep",
        jpeg_quality: int = 90,
        find_decoded_copies: str = "auto",
        compression: str = "none",
        num_shards: int | Mapping[str, int] | None = None,
        store_patience_seconds: float = 180.0,
        max_rejects: float | None = None,
        overwrite: bool = False,
        runner: str | None = None,
        project: str | None = None,
        region: str | None = None,
        wait: bool = True,
        beam_options: Mapping[str, Any] | None = None,
        engine: str | None = None,
        engine_url: str | None = None,
        engine_workers: str | None = None,
    ) -> result.ConversionResult:
        """Converts the frame into TFRecords, with the options of `darkroom.convert`.

        Args:
            output_dir: Folder for the dataset, local or `gs://`; made when absent.
            columns: Kind of each column by name, as in {"path": "image", "age": "integer"}. The
                kinds are those of `darkroom.dataset.schema.Kind`; None infers them from the names.
            label_map: Labels in the order of their numbers: a file with one label per line. Or the
                labels themselves; None sorts them as text.
            split_ratios: Percentages of train, eval and test for rows that do not name a split.
            seed: Seed for everything random: splits, order, weights, augmentation.
            source_encoding: Text encoding of a CSV or JSONL file.
            label_kind: What a text in the column of labels is. With `label` each is one label.
                `auto` refuses texts that look like several labels in one, and numbers that look
                like no classes.
            merge_rows: What becomes of an image whose rows differ in further columns. `first` keeps
                the row whose values come first in their order, wherever it is in the source.
            subfolders: What becomes of images in folders below that of a label, as
                cat/persian/1.jpg. They have the `label` of the folder above, as in Keras; `reject`
                rejects them. Below a folder with the name of a split they are always rejected.
            allowed_roots: Folders that may contain images; images elsewhere are rejected. Links are
                followed first. The reason is `outside_root`; () allows every folder.
            exclude: List of images to leave out: what `darkroom duplicates` wrote, or keys or URIs.
                Keys or URIs may be in a text, CSV or Parquet file. Excluded rows count as
                deduplicated.
            image_check: Decode every image completely before it is written, or read its header
                only. `full` or `header`; with `header` a damaged image may be written.
            resize_short_side: Reduce larger images to this length of their short side, in pixels.
            encoding: Store images as files (keep) or as decoded pixels (raw). Pixels are faster to
                read, and many times larger.
            jpeg_quality: Quality of JPEGs that were reduced. Below 95 their colors have half the
                resolution (4:2:0).
            find_decoded_copies: Decode JPEGs a second time, so that PNGs that were made of them are
                found. `always` or `never`; `auto` does so if the source names other files.
            compression: Compression of the record files. `none` or `gzip`.
            num_shards: Number of shards per split. A number for each split, or numbers by split;
                None or 0 chooses from the size of the data.
            store_patience_seconds: How long reads and writes are tried again while a store does not
                answer. Then the conversion ends, and no row is rejected for it.
            max_rejects: Share of rejected rows that is allowed. With more the conversion fails.
                None: 1 %, or what an earlier run allowed that wrote the same dataset.
            overwrite: Whether to replace what another conversion left in `output_dir`. Files that
                darkroom cannot prove it wrote are never deleted.
            runner: Beam runner; in this process when None. `DataflowRunner` in any letter case.
            project: Google Cloud project, for Dataflow.
            region: Google Cloud region, for Dataflow.
            wait: Whether to wait for a Dataflow job.
            beam_options: Beam's own pipeline options by name.
            engine: Engine that writes the dataset; what Beam must be told of it is found out.
                `flink`, `spark`, `prism` or `dataflow`; in this process when None.
            engine_url: Address of the engine, as http://jobmanager:8081 or spark://master:7077.
            engine_workers: What runs darkroom on the machines of the engine: image=NAME,
                pool=HOST:PORT or command=PATH. Not needed if the engine is on this machine.

        Returns:
            Counts, rejects and paths.

        Raises:
            DarkroomError: As `darkroom.convert` does.
        """
        from darkroom.conversion.convert import convert

        return convert(
            self._frame,
            output_dir,
            columns=columns,
            label_map=label_map,
            split_ratios=split_ratios,
            seed=seed,
            source_encoding=source_encoding,
            label_kind=label_kind,
            merge_rows=merge_rows,
            subfolders=subfolders,
            allowed_roots=allowed_roots,
            exclude=exclude,
            image_check=image_check,
            resize_short_side=resize_short_side,
            encoding=encoding,
            jpeg_quality=jpeg_quality,
            find_decoded_copies=find_decoded_copies,
            compression=compression,
            num_shards=num_shards,
            store_patience_seconds=store_patience_seconds,
            max_rejects=max_rejects,
            overwrite=overwrite,
            runner=runner,
            project=project,
            region=region,
            wait=wait,
            beam_options=beam_options,
            engine=engine,
            engine_url=engine_url,
            engine_workers=engine_workers,
        )

    @begin_at_call
    def to_tfr(
        self,
        output_dir: str | os.PathLike[str] = "./tfrecords",
        schema: Any = None,
        runner: str | None = None,
        project: str | None = None,
        region: str | None = None,
        tfrecorder_wheel: str | None = None,
        dataflow_options: Mapping[str, Any] | None = None,
        job_label: str | None = None,
        compression: str | None = None,
        num_shards: int = 0,
    ) -> result.ConversionResult:
        """Converts the frame, with tensorflow-recorder's arguments by their names.

        Args:
            output_dir: Folder for the dataset.
            schema: Kind of each column by name, `columns` of `darkroom.convert`.
            runner: Beam runner; in this process when None or `DirectRunner`.
            project: Google Cloud project, for Dataflow.
            region: Google Cloud region, for Dataflow.
            tfrecorder_wheel: Not needed any more: darkroom stages itself.
            dataflow_options: Further Beam options by name.
            job_label: Name of the Dataflow job.
            compression: None or `gzip`.
            num_shards: Number of shards per split; 0 chooses from the size of the data.

        Returns:
            Counts, rejects and paths.

        Raises:
            UsageError: An argument is wrong.
            DarkroomError: As `darkroom.convert` does.
        """
        if tfrecorder_wheel is not None:
            warnings.warn("tfrecorder_wheel is not needed: darkroom stages itself.", stacklevel=2)
        beam_options = {} if dataflow_options is None else dataflow_options
        # `convert` refuses what is not a table.
        if job_label is not None and project is not None and isinstance(beam_options, Mapping):
            beam_options = {"job_name": job_label, **beam_options}
        if isinstance(num_shards, int) and num_shards < 0:
            raise UsageError(f"num_shards must not be negative, got {num_shards}.")
        with _name_to_tfrecord():
            return self.to_tfrecord(
                output_dir,
                columns=schema,
                runner=runner,
                project=project,
                region=region,
                compression=compression or "none",
                num_shards=num_shards or None,
                beam_options=beam_options,
            )


@contextmanager
def _name_to_tfrecord() -> Iterator[None]:
    """Says of an error where its option is: `to_tfr` has only those of tensorflow-recorder."""
    try:
        yield
    except result.TooManyRejectsError as error:
        from darkroom.dataset.rejects import LIMIT_OPTION

        error.hint = error.hint.replace(LIMIT_OPTION, "max_rejects of df.tensorflow.to_tfrecord")
        raise


def register_when_loaded() -> None:
    """Registers the accessor now if pandas is loaded, else as soon as it is."""
    if sys.modules.get("pandas") is not None:  # None forbids the import
        _register(sys.modules["pandas"])
    elif not any(isinstance(finder, _PandasFinder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _PandasFinder())


def _register(pandas: Any) -> None:
    pandas.api.extensions.register_dataframe_accessor(ACCESSOR)(TensorFlowAccessor)


class _PandasFinder(MetaPathFinder):
    """Waits for the import of pandas, without causing it."""

    def __init__(self) -> None:
        self._is_searching = False

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname != "pandas" or self._is_searching:
            return None
        # The search below asks all finders again; the others find it.
        self._is_searching = True
        try:
            spec = importlib.util.find_spec(fullname)
        finally:
            self._is_searching = False
        # Not every search is followed by an import, so the finder stays until one is.
        if spec is not None and spec.loader is not None:
            spec.loader = _RegisteringLoader(spec.loader, self)
        return spec


class _RegisteringLoader(Loader):
    """Loads pandas as its own loader does, then registers the accessor."""

    def __init__(self, loader: Loader, finder: _PandasFinder) -> None:
        self._loader = loader
        self._finder = finder

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        if module.__spec__ is not None:
            module.__spec__.loader = self._loader
        module.__loader__ = self._loader
        self._loader.exec_module(module)
        if self._finder in sys.meta_path:
            sys.meta_path.remove(self._finder)
        _register(module)

    def __getattr__(self, name: str) -> Any:
        # Resources and metadata are asked of the loader that knows the package.
        return getattr(self._loader, name)
