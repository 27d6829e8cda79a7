"""What the readers of other tools' formats share: tables of calls, names and sorted events."""
