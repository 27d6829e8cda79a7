-- Journals of every kind, large transactions, rollbacks, indices, vacuum, attach, backup.
.bail off
PRAGMA page_size = 4096;
PRAGMA journal_mode = WAL;
CREATE TABLE t (id INTEGER PRIMARY KEY, a TEXT, b REAL, c BLOB);
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 60000)
INSERT INTO t SELECT i, 'text ' || (i * 7919 % 10007), i / 3.0, zeroblob(i % 50) FROM n;
CREATE INDEX t_a ON t (a);
PRAGMA wal_checkpoint(TRUNCATE);
BEGIN; DELETE FROM t WHERE id % 3 = 0; SELECT count(*) FROM t; ROLLBACK;
SELECT count(*), sum(length(c)), max(a) FROM t;
PRAGMA journal_mode = DELETE;
BEGIN; UPDATE t SET a = a || 'x' WHERE id % 5 = 0; COMMIT;
PRAGMA cache_size = 10;
PRAGMA cache_spill = 10;
BEGIN; UPDATE t SET b = b + 1; DELETE FROM t WHERE id % 7 = 0; COMMIT;
PRAGMA journal_mode = TRUNCATE;
INSERT INTO t (a) VALUES ('one more');
INSERT INTO t (id) VALUES (1);
PRAGMA journal_mode = PERSIST;
PRAGMA temp_store = FILE;
CREATE TEMP TABLE big AS SELECT t.id, u.a FROM t JOIN t u ON u.id = t.id + 1 ORDER BY u.a, t.id;
SELECT count(*), min(a), max(id) FROM big;
ATTACH 'other.db' AS other;
CREATE TABLE other.copy AS SELECT * FROM t WHERE id < 5000;
PRAGMA mmap_size = 0;
VACUUM;
PRAGMA integrity_check;
.backup saved.db
.open saved.db
SELECT count(*), sum(id), group_concat(a) FROM (SELECT * FROM t ORDER BY id LIMIT 20);
.output dump.sql
.dump
.output stdout
.import --csv missing.csv t
SELECT * FROM nothing;
