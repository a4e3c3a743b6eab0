"""Imports of training history: files of done sets become workouts of clients, in the background."""
