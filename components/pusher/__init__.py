"""The component Pusher."""
