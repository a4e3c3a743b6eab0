"""The pages for clients, under /train: one module for each part."""

from coaching_service.web.views.train import first_access, messages, today

MODULES = (first_access, today, messages)
