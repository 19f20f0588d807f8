"""The database's shape, as named steps. Never change a step that was released: add one."""

from __future__ import annotations

from sqlite_utils import Database, Migrations

migrations = Migrations("playground")


@migrations(name="001_history")
def history(db: Database) -> None:
    """Runs, their sides, each side's requests with raw chunk timings, and samples of the engine's counters."""
    db.table("runs").create(
        {
            "id": str,
            "created_at": str,
            "mode": str,
            "status": str,
            "preset": str,
            "seed": int,
            "workload": str,
            "machine": str,
            "problem": str,
        },
        pk="id",
        not_null={"created_at", "mode", "status", "workload", "machine"},
    )
    db.table("sides").create(
        {
            "run_id": str,
            "position": int,
            "label": str,
            "settings": str,
            "command": str,
            "runtime_version": str,
            "device": str,
            "placement": str,
            "contended": int,
            "before": str,
            "after": str,
            "problem": str,
            "log_tail": str,
        },
        pk=("run_id", "position"),
        not_null={"label", "settings"},
        foreign_keys=[("run_id", "runs", "id")],
    )
    db.table("requests").create(
        {
            "run_id": str,
            "position": int,
            "number": int,
            "sent_ms": float,
            "conversation": str,
            "output_text": str,
            "token_ids": str,
            "chunks": str,
            "finish_reason": str,
            "prompt_tokens": int,
            "output_tokens": int,
            "steps": str,
            "problem": str,
            "ended": int,
        },
        pk=("run_id", "position", "number"),
        not_null={"conversation", "output_text", "chunks"},
        foreign_keys=[("run_id", "runs", "id")],
    )
    db.table("samples").create(
        {"run_id": str, "position": int, "ms": float, "counters": str},
        pk=("run_id", "position", "ms"),
        not_null={"counters"},
        foreign_keys=[("run_id", "runs", "id")],
    )
    db.table("runs").create_index(["created_at"])
