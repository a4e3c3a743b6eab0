// The module above as a global, for scripts that are no modules.
globalThis.Combobox = Combobox;
