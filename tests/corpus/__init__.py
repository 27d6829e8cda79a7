import sys
from pathlib import Path

# `python -m tests.corpus.freeze` finds the modules that all tests share, as pytest does.
sys.path.append(str(Path(__file__).resolve().parents[1]))
