"""Moves a queue from one store to another: planned, copied with stable ids, verified, cut over, resumable at every
step."""

from __future__ import annotations

from jobwire.pipeline.move.abandon import abandon_move
from jobwire.pipeline.move.move import MoveResult, move, verify_move
from jobwire.pipeline.move.plan import Hindrance, MovePlan, plan_move
from jobwire.pipeline.move.verify import Verified

__all__ = ["Hindrance", "MovePlan", "MoveResult", "Verified", "abandon_move", "move", "plan_move", "verify_move"]
