"""Parts shared by the readers of other tools' formats: tables of calls, names and sorted events."""
