"use strict";
// Enhancements of the pages for clients: every page works without this script.
