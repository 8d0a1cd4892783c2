"""The component ImportSchemaGen."""
