"""ImportSchemaGen: TFX's own, with a driver that notices a changed schema."""

from __future__ import annotations

from tfx.components.schema_gen.import_schema_gen import component as tfx_component

from darkroom.components.file_state import SCHEMA_STATE
from darkroom.components.state_driver import TAKEN_BY_EACH_RUN, SchemaDriver


class ImportSchemaGen(tfx_component.ImportSchemaGen):
    """Takes a schema from a file; each run looks whether the file has changed.

    Component `outputs` contains:
      - `schema`: `standard_artifacts.Schema`.
    """

    DRIVER_CLASS = SchemaDriver

    def __init__(self, schema_file: str, *, fingerprint: str | None = None) -> None:
        """Makes the component.

        Args:
            schema_file: TFDV's schema in text form, as SchemaGen writes it.
            fingerprint: State of the file, which caches compare. With None each run takes it. A
                text is used as it is.
        """
        super().__init__(schema_file)
        given = TAKEN_BY_EACH_RUN if fingerprint is None else fingerprint
        # TFX's constructor makes its own spec, which has no such property.
        self.spec.exec_properties[SCHEMA_STATE.key] = given
