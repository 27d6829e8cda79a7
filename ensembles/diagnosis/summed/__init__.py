"""Rules on sums of calls by function, size class and task: what mode ``profile`` keeps."""
