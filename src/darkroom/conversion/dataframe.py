"""`df.tensorflow` on pandas DataFrames, whichever of pandas and darkroom is imported first."""

from __future__ import annotations

import importlib.util
import os
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from importlib.machinery import ModuleSpec
from types import MethodType, ModuleType
from typing import TYPE_CHECKING, Any

from darkroom.errors import UsageError
from darkroom.runtime.lazy_names import LazyModule
from darkroom.runtime.process import begin_at_call

if TYPE_CHECKING:
    from importlib.abc import Loader, MetaPathFinder

    import pandas as pd

    from darkroom.conversion import result
else:
    # Python looks for their methods only. In 3.11 importlib.abc loads tempfile, which takes long.
    Loader = MetaPathFinder = object
    # Loading them would make `import darkroom` slow.
    pd, result = LazyModule("pandas"), LazyModule("darkroom.conversion.result")

ACCESSOR = "tensorflow"


class _Convert:
    """`darkroom.convert` as the method of a frame; loaded when it is looked up."""

    def __get__(self, accessor: TensorFlowAccessor | None, _: type) -> Callable[..., Any]:
        from darkroom.conversion.convert import convert

        return convert if accessor is None else MethodType(convert, accessor.frame)


class TensorFlowAccessor:
    """Converts the images that a DataFrame lists.

    The frame has a column with image paths (`image_uri`), and usually `split` and `label`; other
    columns become features under their own names.

    Attributes:
        frame: The DataFrame.
        to_tfrecord: `darkroom.convert` with the frame as its source.
    """

    def __init__(self, frame: pd.DataFrame) -> None:
        self.frame = frame

    to_tfrecord = _Convert()

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
        # `convert` refuses anything but a table.
        if job_label is not None and project is not None and isinstance(beam_options, Mapping):
            beam_options = {"job_name": job_label, **beam_options}
        if isinstance(num_shards, int) and num_shards < 0:
            raise UsageError(f"num_shards must not be negative, got {num_shards}.")
        from darkroom.dataset.rejects import LIMIT_OPTION
        from darkroom.options.conversion import ConversionOptions

        try:
            converted: result.ConversionResult = self.to_tfrecord(
                output_dir,
                columns=schema,
                runner=runner,
                project=project,
                region=region,
                num_shards=num_shards or None,
                options=ConversionOptions(
                    compression=compression or "none", beam_options=beam_options
                ),
            )
        except result.TooManyRejectsError as error:
            # Here are only the options of tensorflow-recorder.
            error.hint = error.hint.replace(
                LIMIT_OPTION, "max_rejects of df.tensorflow.to_tfrecord"
            )
            raise
        return converted


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
