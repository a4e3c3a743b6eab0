"""The schemas of workout blocks, and of the operations on them."""

from __future__ import annotations

from coaching_service.core.external_identity import IdentityFields, IdentityResult
from coaching_service.core.field_schemas import input_of, output_of, query_of
from coaching_service.core.query import SearchedRange
from coaching_service.core.validation import DryRun
from coaching_service.training.workouts.blocks import models

CalendarQuery = query_of(models.CalendarQuery, SearchedRange, query_of(models.BlockFilters))
WorkoutBlockQuery = query_of(models.WorkoutBlockQuery)
# The items come before the other fields, as in earlier API documents.
_BLOCK = (IdentityFields, input_of(models.BlockItems))
ScheduledWorkoutBlock = input_of(models.ScheduledWorkoutBlock, *_BLOCK)
NewWorkoutBlock = input_of(models.NewWorkoutBlock, *_BLOCK, DryRun)
WorkoutBlock = output_of(models.WorkoutBlock, IdentityResult)
WorkoutBlockCopy = input_of(models.WorkoutBlockCopy)
WorkoutBlockShift = input_of(models.WorkoutBlockShift, DryRun)
