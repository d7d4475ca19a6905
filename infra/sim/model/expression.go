package model

import (
	_ "embed"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// reserved are DynamoDB's reserved words: ReservedWords.html of its developer guide.
//
//go:embed reserved.txt
var reservedList string

var reserved = strings.Fields(reservedList)

// placeholders are the names and values for all expressions in a request.
type placeholders struct {
	names      map[string]string
	values     map[string]attribute
	used       map[string]bool
	expression bool // there is one
}

func newPlaceholders(names map[string]string, values map[string]attribute) *placeholders {
	return &placeholders{names: names, values: values, used: map[string]bool{}}
}

var placeholder = regexp.MustCompile(`^[#:]\w+$`)

// check refuses placeholders that no expression uses. It comes after the expressions.
func (p *placeholders) check() error {
	for _, group := range []struct {
		member, mark string
		given        bool
		keys         []string
	}{
		{"ExpressionAttributeNames", "#", p.names != nil, slices.Sorted(maps.Keys(p.names))},
		{"ExpressionAttributeValues", ":", p.values != nil, slices.Sorted(maps.Keys(p.values))},
	} {
		if group.given && !p.expression {
			return invalid("%s can only be specified when using expressions", group.member)
		}
		if group.given && len(group.keys) == 0 {
			return invalid("%s must not be empty", group.member)
		}
		var unused []string
		for _, key := range group.keys {
			if !placeholder.MatchString(key) || !strings.HasPrefix(key, group.mark) {
				return invalid(`%s contains invalid key: Syntax error; key: "%s"`, group.member, key)
			}
			if !p.used[key] {
				unused = append(unused, key)
			}
		}
		if len(unused) > 0 {
			return invalid("Value provided in %s unused in expressions: keys: {%s}", group.member, strings.Join(unused, ", "))
		}
	}
	return nil
}

// path is a document path: an attribute and members of maps in it.
type path []string

func (p path) String() string { return "[" + strings.Join(p, ", ") + "]" }

// node is an expression. Its operator is "path", "value", a comparator, AND, OR, NOT,
// IN, BETWEEN, "+", "-" or a function.
type node struct {
	operator string
	operands []*node
	path     path
	value    attribute
	wrapped  bool // in parentheses
}

func (n *node) String() string {
	if n.operator == "path" {
		return n.path.String()
	}
	return n.operator
}

// parser reads one expression by recursive descent. After the first error it is at the
// end of the expression, and err keeps the error.
type parser struct {
	kind   string // such as ConditionExpression
	tokens []string
	p      *placeholders
	err    error
}

var token = regexp.MustCompile(`\s+|[#:]?\w+|<>|<=|>=|.`)

// newParser begins to read an expression. Without one it returns nil.
func newParser(kind string, text *string, p *placeholders) *parser {
	if text == nil {
		return nil
	}
	p.expression = true
	r := &parser{kind: kind, p: p, tokens: token.FindAllString(*text, -1)}
	r.tokens = slices.DeleteFunc(r.tokens, func(t string) bool { return strings.TrimSpace(t) == "" })
	if len(*text) > 4096 {
		r.fail("Expression size has exceeded the maximum allowed size; expression size: %d", len(*text))
	} else if len(r.tokens) == 0 {
		r.fail("The expression can not be empty;")
	}
	return r
}

func (r *parser) fail(format string, args ...any) {
	if r.err == nil {
		r.err = invalid("Invalid %s: %s", r.kind, fmt.Sprintf(format, args...))
	}
	r.tokens = nil
}

func (r *parser) lack(what string) {
	if r.err == nil {
		r.err = notModelled("%s in a %s", what, r.kind)
	}
	r.tokens = nil
}

// unexpected fails at the next token.
func (r *parser) unexpected() {
	near := strings.Join(r.tokens[:min(3, len(r.tokens))], " ")
	at := "<EOF>"
	if len(r.tokens) > 0 {
		at = r.tokens[0]
	}
	r.fail(`Syntax error; token: "%s", near: "%s"`, at, near)
}

// peek returns the next token, "" at the end. Keywords are in upper case.
func (r *parser) peek() string {
	if len(r.tokens) == 0 {
		return ""
	}
	switch upper := strings.ToUpper(r.tokens[0]); upper {
	case "AND", "OR", "NOT", "IN", "BETWEEN", "SET", "REMOVE", "ADD", "DELETE":
		return upper
	}
	return r.tokens[0]
}

// accept reads the token if it is the next one.
func (r *parser) accept(token string) bool {
	if len(r.tokens) == 0 || r.peek() != token {
		return false
	}
	r.tokens = r.tokens[1:]
	return true
}

func (r *parser) expect(token string) {
	if !r.accept(token) {
		r.unexpected()
	}
}

// end refuses trailing text.
func (r *parser) end() error {
	if r.err == nil && len(r.tokens) > 0 {
		r.unexpected()
	}
	return r.err
}

// condition reads a whole condition: a key condition, a filter or a condition of a
// write. Without a text there is none.
func condition(kind string, text *string, p *placeholders) (*node, error) {
	r := newParser(kind, text, p)
	if r == nil {
		return nil, nil //nolint:nilnil // no condition is a valid result: it always holds
	}
	n := r.or()
	return n, r.end()
}

func (r *parser) or() *node {
	n := r.and()
	for r.accept("OR") {
		n = &node{operator: "OR", operands: []*node{n, r.and()}}
	}
	return n
}

func (r *parser) and() *node {
	n := r.not()
	for r.accept("AND") {
		n = &node{operator: "AND", operands: []*node{n, r.not()}}
	}
	return n
}

func (r *parser) not() *node {
	if r.accept("NOT") {
		return &node{operator: "NOT", operands: []*node{r.not()}}
	}
	if !r.accept("(") {
		return r.comparison()
	}
	n := r.or()
	r.expect(")")
	if n.wrapped {
		r.fail("The expression has redundant parentheses;")
	}
	n.wrapped = true
	return n
}

// comparison reads a comparison or a function that is a condition by itself.
func (r *parser) comparison() *node {
	left := r.operand()
	if left.operator == "attribute_exists" || left.operator == "attribute_not_exists" || left.operator == "begins_with" {
		return left
	}
	n := &node{operator: r.peek(), operands: []*node{left}}
	switch n.operator {
	case "=", "<>", "<", "<=", ">", ">=":
		r.accept(n.operator)
		n.operands = append(n.operands, r.operand())
	case "BETWEEN":
		r.accept("BETWEEN")
		n.operands = append(n.operands, r.operand())
		r.expect("AND")
		n.operands = append(n.operands, r.operand())
	case "IN":
		r.accept("IN")
		r.expect("(")
		n.operands = append(n.operands, r.operand())
		for r.accept(",") {
			n.operands = append(n.operands, r.operand())
		}
		r.expect(")")
	default:
		r.unexpected()
	}
	r.checkComparison(n)
	return n
}

// checkComparison refuses operands that cannot be compared, whatever the item is.
func (r *parser) checkComparison(n *node) {
	if r.err != nil {
		return
	}
	for _, o := range n.operands {
		if o.operator == "if_not_exists" {
			r.fail("The function is not allowed in a condition expression; function: if_not_exists")
			return
		}
		if n.operator != "=" && n.operator != "<>" && n.operator != "IN" && o.operator == "value" {
			if _, ordered := compare(o.value.AttributeValue, o.value.AttributeValue); !ordered {
				r.fail("Incorrect operand type for operator or function; operator or function: %s, operand type: %s", n.operator, typeOf(o.value.AttributeValue))
				return
			}
		}
		if o != n.operands[0] && o.operator == "path" && o.String() == n.operands[0].String() {
			r.fail("The first operand must be distinct from the remaining operands for this operator or function; operator: %s, first operand: %s", n.operator, o)
			return
		}
	}
	if low, high := n.operands[len(n.operands)-2], n.operands[len(n.operands)-1]; n.operator == "BETWEEN" && low.operator == "value" && high.operator == "value" {
		if order, same := compare(low.value.AttributeValue, high.value.AttributeValue); !same || order > 0 {
			r.fail("The BETWEEN operator requires upper bound to be greater than or equal to lower bound")
		}
	}
}

// operand reads a path, a value or a function.
func (r *parser) operand() *node {
	t := r.peek()
	switch {
	case strings.HasPrefix(t, ":") && placeholder.MatchString(t):
		r.accept(t)
		v, ok := r.p.values[t]
		if !ok {
			r.fail("An expression attribute value used in expression is not defined; attribute value: %s", t)
			return &node{}
		}
		r.p.used[t] = true
		return &node{operator: "value", value: v}
	case len(r.tokens) > 1 && r.tokens[1] == "(" && isName.MatchString(t):
		return r.function()
	}
	return &node{operator: "path", path: r.path()}
}

// arguments are the functions of the model and the numbers of their operands.
var arguments = map[string]int{"attribute_exists": 1, "attribute_not_exists": 1, "begins_with": 2, "if_not_exists": 2}

func (r *parser) function() *node {
	n := &node{operator: r.tokens[0]}
	want, known := arguments[n.operator]
	switch {
	case slices.Contains([]string{"attribute_type", "contains", "size", "list_append"}, n.operator):
		r.lack("the function " + n.operator)
		return n
	case !known:
		r.fail("Invalid function name; function: %s", n.operator)
		return n
	}
	r.tokens = r.tokens[2:]
	n.operands = append(n.operands, r.operand())
	for r.accept(",") {
		n.operands = append(n.operands, r.operand())
	}
	r.expect(")")
	if r.err != nil {
		return n
	}
	last := n.operands[len(n.operands)-1]
	switch {
	case len(n.operands) != want:
		r.fail("Incorrect number of operands for operator or function; operator or function: %s, number of operands: %d", n.operator, len(n.operands))
	case n.operands[0].operator != "path":
		r.fail("Operator or function requires a document path; operator or function: %s", n.operator)
	case n.operator == "begins_with" && last.operator == "value" && typeOf(last.value.AttributeValue) != "S" && typeOf(last.value.AttributeValue) != "B":
		r.fail("Incorrect operand type for operator or function; operator or function: begins_with, operand type: %s", typeOf(last.value.AttributeValue))
	}
	return n
}

var isName = regexp.MustCompile(`^[A-Za-z]\w*$`)

// path reads a document path.
func (r *parser) path() (p path) {
	for {
		t := ""
		if len(r.tokens) > 0 {
			t = r.tokens[0]
		}
		switch {
		case strings.HasPrefix(t, "#") && placeholder.MatchString(t):
			name, ok := r.p.names[t]
			if !ok {
				r.fail("An expression attribute name used in the document path is not defined; attribute name: %s", t)
				return p
			}
			r.p.used[t] = true
			p = append(p, name)
		case !isName.MatchString(t):
			r.unexpected()
			return p
		case slices.Contains(reserved, strings.ToUpper(t)):
			r.fail("Attribute name is a reserved keyword; reserved keyword: %s", t)
			return p
		default:
			p = append(p, t)
		}
		r.tokens = r.tokens[1:]
		if r.peek() == "[" {
			r.lack("an element of a list")
		}
		if !r.accept(".") {
			return p
		}
	}
}

// paths reads the paths of a projection.
func projection(text *string, p *placeholders) ([]path, error) {
	r := newParser("ProjectionExpression", text, p)
	if r == nil {
		return nil, nil
	}
	paths := []path{r.path()}
	for r.accept(",") {
		paths = append(paths, r.path())
	}
	r.distinct(paths)
	return paths, r.end()
}

// distinct refuses two paths if one contains the other.
func (r *parser) distinct(paths []path) {
	for i, a := range paths {
		for _, b := range paths[:i] {
			if shorter := min(len(a), len(b)); slices.Equal(a[:shorter], b[:shorter]) {
				r.fail("Two document paths overlap with each other; must remove or rewrite one of these paths; path one: %s, path two: %s", b, a)
				return
			}
		}
	}
}

// action is one path of an update. Without an operand it is removed.
type action struct {
	path path
	set  *node
}

// update reads an update expression. Without a text it has no actions.
func update(text *string, p *placeholders) ([]action, error) {
	r := newParser("UpdateExpression", text, p)
	if r == nil {
		return nil, nil
	}
	var actions []action
	sections := map[string]bool{}
	for len(r.tokens) > 0 {
		section := r.peek()
		if sections[section] {
			r.fail(`The "%s" section can only be used once in an update expression;`, section)
		}
		sections[section] = true
		switch section {
		case "SET":
			r.accept("SET")
			actions = append(actions, r.assignment())
			for r.accept(",") {
				actions = append(actions, r.assignment())
			}
		case "REMOVE":
			r.accept("REMOVE")
			actions = append(actions, action{path: r.path()})
			for r.accept(",") {
				actions = append(actions, action{path: r.path()})
			}
		case "ADD", "DELETE":
			r.lack(section)
		default:
			r.unexpected()
		}
	}
	paths := make([]path, len(actions))
	for i, a := range actions {
		paths[i] = a.path
	}
	if r.err == nil {
		r.distinct(paths)
	}
	return actions, r.err
}

// assignment reads an action of SET.
func (r *parser) assignment() action {
	a := action{path: r.path()}
	r.expect("=")
	a.set = r.term()
	if sign := r.peek(); sign == "+" || sign == "-" {
		r.accept(sign)
		a.set = &node{operator: sign, operands: []*node{a.set, r.term()}}
		for _, o := range a.set.operands {
			for _, v := range append([]*node{o}, o.operands...) {
				if r.err == nil && v.operator == "value" && typeOf(v.value.AttributeValue) != "N" {
					r.fail("Incorrect operand type for operator or function; operator or function: %s, operand type: %s", sign, typeOf(v.value.AttributeValue))
				}
			}
		}
	}
	return a
}

// term reads an operand of SET.
func (r *parser) term() *node {
	if r.peek() == "(" {
		r.lack("parentheses")
	}
	n := r.operand()
	if n.operator != "path" && n.operator != "value" && n.operator != "if_not_exists" {
		r.fail("The function is not allowed in an update expression; function: %s", n.operator)
	}
	return n
}
