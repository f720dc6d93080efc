"""The stages from configuration to report; each takes plain data and returns plain data."""
