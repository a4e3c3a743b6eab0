"""What every feature stands on; knows no feature."""
