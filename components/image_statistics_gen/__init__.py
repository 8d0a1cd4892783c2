"""The component ImageStatisticsGen."""
