package install

func EditClaude(doc []byte, command string, args []string) ([]byte, error) {
	return editClaude(doc, entry{command, args})
}

func EditCodex(doc []byte, command string, args []string) ([]byte, error) {
	return editCodex(doc, entry{command, args})
}
