package redact

// automaton finds every literal of every rule and every form of every secret in
// one pass (Aho and Corasick). Its states are the prefixes of what it looks for;
// the state after a byte is the longest of them that the text ends with, so its
// depth says how much may be the beginning of something.
type automaton struct {
	nodes []node
	rows  []row    // children of nodes that have many, by byte; the first is the root's
	lits  []ending // literals that end at nodes
	scan  scanner
}

type row [256]int32

type node struct {
	child   int32 // first child; 0 for none
	sibling int32 // next child of the same parent
	fail    int32 // longest proper suffix that is a prefix of something
	row     int32 // 1 + index of its row; 0 for none
	depth   int32
	secret  int32 // length of the longest secret that ends here; 0 for none
	lits    int32 // 1 + index of its own last literal; 0 for none
	next    int32 // nearest suffix that has literals; 0 for none
	b       byte  // by which its parent leads here
	hit     bool  // something ends here
	wraps   bool  // line ends may follow that are not looked at
}

type ending struct {
	spec uint8
	len  int32
	next int32 // 1 + index; 0 for the last
}

// manyChildren is from how many children on a node has a row.
const manyChildren = 5

func (a *automaton) step(s int32, c byte) int32 {
	for {
		n := &a.nodes[s]
		if n.row != 0 {
			if t := a.rows[n.row-1][c]; t != 0 {
				return t
			}
		} else {
			for t := n.child; t != 0; t = a.nodes[t].sibling {
				if a.nodes[t].b == c {
					return t
				}
			}
		}
		if s == 0 {
			return 0
		}
		s = n.fail
	}
}

type builder struct {
	a automaton
}

func newBuilder() *builder {
	b := &builder{}
	b.a.nodes = make([]node, 1, 2048)
	b.a.rows = make([]row, 1)
	b.a.nodes[0].row = 1
	return b
}

// insert returns the node of a text, which it makes with all before it.
func (b *builder) insert(text string) int32 {
	b.a.scan.add(text)
	at := int32(0)
	for i := range len(text) {
		at = b.childOf(at, text[i])
	}
	return at
}

func (b *builder) childOf(at int32, c byte) int32 {
	if r := b.a.nodes[at].row; r != 0 {
		if t := b.a.rows[r-1][c]; t != 0 {
			return t
		}
	} else {
		for t := b.a.nodes[at].child; t != 0; t = b.a.nodes[t].sibling {
			if b.a.nodes[t].b == c {
				return t
			}
		}
	}
	t := int32(len(b.a.nodes))
	b.a.nodes = append(b.a.nodes, node{b: c, depth: b.a.nodes[at].depth + 1, sibling: b.a.nodes[at].child})
	b.a.nodes[at].child = t
	b.row(at, t)
	return t
}

// row keeps the row of a node in step with its children, and gives it one when
// it has many.
func (b *builder) row(at, child int32) {
	n := &b.a.nodes[at]
	if n.row == 0 {
		count := 0
		for t := n.child; t != 0; t = b.a.nodes[t].sibling {
			count++
		}
		if count < manyChildren {
			return
		}
		b.a.rows = append(b.a.rows, row{})
		n.row = int32(len(b.a.rows))
		for t := n.child; t != 0; t = b.a.nodes[t].sibling {
			b.a.rows[n.row-1][b.a.nodes[t].b] = t
		}
		return
	}
	b.a.rows[n.row-1][b.a.nodes[child].b] = child
}

func (b *builder) literal(text string, spec uint8) {
	n := b.insert(text)
	b.a.lits = append(b.a.lits, ending{spec: spec, len: int32(len(text)), next: b.a.nodes[n].lits})
	b.a.nodes[n].lits = int32(len(b.a.lits))
}

// minWrapped is how much of a form must have come before line ends in it are
// passed over. With less, the ends of ordinary lines would often be held.
const minWrapped = 4

func (b *builder) secret(text string, wraps bool) {
	n := b.insert(text)
	b.a.nodes[n].secret = int32(len(text))
	if !wraps || len(text) <= minWrapped {
		return
	}
	at := int32(0)
	for i := range len(text) - 1 {
		if at = b.childOf(at, text[i]); i+1 >= minWrapped {
			b.a.nodes[at].wraps = true
		}
	}
}

// finish links every node to its longest suffix, nearest to the root first, and
// returns nil when there is nothing to find.
func (b *builder) finish() *automaton {
	a := &b.a
	if len(a.nodes) == 1 {
		return nil
	}
	queue := make([]int32, 1, len(a.nodes))
	for i := 0; i < len(queue); i++ {
		at := queue[i]
		for t := a.nodes[at].child; t != 0; t = a.nodes[t].sibling {
			n := &a.nodes[t]
			if at != 0 {
				n.fail = a.step(a.nodes[at].fail, n.b)
			}
			f := &a.nodes[n.fail]
			if n.secret == 0 {
				n.secret = f.secret
			}
			n.next = n.fail
			if f.lits == 0 {
				n.next = f.next
			}
			n.hit = n.secret != 0 || n.lits != 0 || n.next != 0
			queue = append(queue, t)
		}
	}
	return a
}
