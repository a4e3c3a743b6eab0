"""The pages that only clients have, under /train: one module for each part."""
