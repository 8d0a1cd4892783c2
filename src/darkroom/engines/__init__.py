"""Engines that run the job of a conversion elsewhere: Flink, Spark, Prism, or any job server."""
