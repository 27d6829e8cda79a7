"""What pictures and pages share: data, figures, colours, calls, and how they are saved and served."""
