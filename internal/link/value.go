package link

// nest is the stack of open containers around a place, a bit each: 1 for an object.
type nest struct {
	bits  [maxDepth / 64]uint64
	depth int
}

func (n *nest) push(object bool) {
	bit := uint64(1) << (n.depth % 64)
	n.bits[n.depth/64] &^= bit
	if object {
		n.bits[n.depth/64] |= bit
	}
	n.depth++
}

func (n *nest) object() bool {
	d := n.depth - 1
	return n.bits[d/64]>>(d%64)&1 == 1
}

// value reads any one value and returns its text without the white space around it.
func (s *scanner) value() []byte {
	s.peek()
	start := s.at
	var in nest
	for s.err == nil {
		if s.begin(&in) {
			continue // an opened container: its first element is next
		}
		if s.err == nil && s.leave(&in) {
			return s.text[start:s.at]
		}
	}
	return nil
}

// begin reads a scalar or an empty container, or opens a container and reports that
// an element is due.
func (s *scanner) begin(in *nest) (opened bool) {
	switch c := s.peek(); {
	case c == '{' || c == '[':
		s.at++
		if s.peek() == c+2 { // '}' and ']' stand two behind their openers
			s.at++
			return false
		}
		if in.depth == maxDepth {
			s.refuse("too many values within each other")
			return false
		}
		in.push(c == '{')
		if c == '{' {
			s.key()
		}
		return true
	case c == '"':
		s.quoted()
	case c == '-' || c >= '0' && c <= '9':
		s.float()
	case s.literal("true") || s.literal("false") || s.literal("null"):
	default:
		s.refuse("a value is due")
	}
	return false
}

// leave is called after a value: it closes what ends here and reports whether that
// was the outermost value, or moves to the next element.
func (s *scanner) leave(in *nest) (done bool) {
	for in.depth > 0 {
		end := byte(']')
		if in.object() {
			end = '}'
		}
		switch s.peek() {
		case end:
			s.at++
			in.depth--
			continue
		case ',':
			s.at++
			if end == '}' {
				s.key()
			}
			return false
		}
		s.refuse("',' or '" + string(end) + "' is due")
		return false
	}
	return true
}

// key reads the name of a member of a body, with its colon.
func (s *scanner) key() {
	s.quoted()
	if s.err != nil {
		return
	}
	if s.peek() != ':' {
		s.refuse("':' is due")
		return
	}
	s.at++
}

func (s *scanner) float() {
	if s.text[s.at] == '-' {
		s.at++
	}
	whole := s.digits()
	if whole == 0 || whole > 1 && s.text[s.at-whole] == '0' {
		s.refuse("a number is due")
		return
	}
	if s.at < len(s.text) && s.text[s.at] == '.' {
		s.at++
		if s.digits() == 0 {
			s.refuse("a digit is due")
			return
		}
	}
	if s.at < len(s.text) && s.text[s.at]|0x20 == 'e' {
		s.at++
		if s.at < len(s.text) && (s.text[s.at] == '+' || s.text[s.at] == '-') {
			s.at++
		}
		if s.digits() == 0 {
			s.refuse("a digit is due")
		}
	}
}

func (s *scanner) digits() int {
	start := s.at
	for s.at < len(s.text) && s.text[s.at] >= '0' && s.text[s.at] <= '9' {
		s.at++
	}
	return s.at - start
}
