"""Import of a company's export, or of a CSV file of clients, in steps that continue after an interruption."""
