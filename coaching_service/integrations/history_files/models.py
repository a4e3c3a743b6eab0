"""What files that people bring are called."""

from __future__ import annotations

from typing import Literal

Format = Literal["hevy", "strong", "fitnotes", "stronglifts", "gravl", "trainheroic", "workouts", "sets"]
