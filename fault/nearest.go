package fault

// Nearest is the known name with the fewest letters to insert, delete or exchange,
// the first of equals, and whether it is likely to be what was meant. It is for
// the Next line of an error about a name that does not exist.
func Nearest(name string, known []string) (near string, likely bool) {
	least := -1
	for _, k := range known {
		if d := edits(name, k); least < 0 || d < least {
			near, least = k, d
		}
	}
	return near, least >= 0 && least < len(name) && least <= max(2, 1+len(name)/3)
}

func edits(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
