-- The first released shape, as it stands in people's files. Never change it: later migrations must open it.
CREATE TABLE "_sqlite_migrations" (
  "id" INTEGER PRIMARY KEY, "migration_set" TEXT, "name" TEXT, "applied_at" TEXT);
CREATE UNIQUE INDEX "idx__sqlite_migrations_migration_set_name" ON "_sqlite_migrations" ("migration_set", "name");
INSERT INTO "_sqlite_migrations" VALUES (1, 'playground', '001_history', '2026-11-29 19:24:39.967114+00:00');
CREATE TABLE "runs" ("id" TEXT PRIMARY KEY, "created_at" TEXT NOT NULL, "mode" TEXT NOT NULL,
  "status" TEXT NOT NULL, "preset" TEXT, "seed" INTEGER NOT NULL, "workload" TEXT NOT NULL,
  "machine" TEXT NOT NULL, "problem" TEXT);
CREATE TABLE "sides" ("run_id" TEXT REFERENCES "runs"("id"), "position" INTEGER, "label" TEXT NOT NULL,
  "settings" TEXT NOT NULL, "command" TEXT, "runtime_version" TEXT, "device" TEXT, "placement" TEXT,
  "contended" INTEGER, "before" TEXT, "after" TEXT, "problem" TEXT, "log_tail" TEXT,
  PRIMARY KEY ("run_id", "position"));
CREATE TABLE "requests" ("run_id" TEXT REFERENCES "runs"("id"), "position" INTEGER, "number" INTEGER,
  "sent_ms" REAL, "conversation" TEXT NOT NULL, "output_text" TEXT NOT NULL, "token_ids" TEXT,
  "chunks" TEXT NOT NULL, "finish_reason" TEXT, "prompt_tokens" INTEGER, "output_tokens" INTEGER,
  "steps" TEXT, "problem" TEXT, "ended" INTEGER, PRIMARY KEY ("run_id", "position", "number"));
CREATE TABLE "samples" ("run_id" TEXT REFERENCES "runs"("id"), "position" INTEGER, "ms" REAL,
  "counters" TEXT NOT NULL, PRIMARY KEY ("run_id", "position", "ms"));
CREATE INDEX "idx_runs_created_at" ON "runs" ("created_at");
INSERT INTO "runs" VALUES ('r0', '2026-01-01T00:00:00+00:00', 'race', 'done', NULL, 0, '{"prompt":"old"}', '{}',
  NULL);
INSERT INTO "sides" VALUES ('r0', 0, 'A', '{"target":"t"}', '', NULL, NULL, '', 1, '{"running":0}', NULL, NULL,
  NULL);
INSERT INTO "requests" VALUES ('r0', 0, 0, 0.5, '[{"role":"user","content":"old"}]', 'ab', '[1,2]',
  '[[10.0,1,"a"],[20.0,1,"b"]]', 'stop', 3, 2, NULL, NULL, 1);
INSERT INTO "samples" VALUES ('r0', 0, 500.0, '{"running":1}');
