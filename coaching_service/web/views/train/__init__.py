"""The pages that only clients have, under /train: one module for each part."""

from coaching_service.web.views.train import calendar, media, own_workouts, progress, settings, workout

MODULES = (calendar, media, own_workouts, progress, settings, workout)
