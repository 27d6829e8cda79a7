"""Why an application's I/O is slow: findings, one file each (docs/reference/methods/diagnosis.md)."""
