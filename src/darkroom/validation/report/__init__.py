"""The report on a dataset: report.json, report.md, report.html."""
