"""The component ValidationGate."""
