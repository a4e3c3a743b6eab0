"""The pages of one workout, declared for clients' calendars, programs and templates alike."""
