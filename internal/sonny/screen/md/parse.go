package md

import (
	"bytes"

	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

// grammar is CommonMark with tables, strikethrough and task lists. Footnotes are
// text, and so are their definitions. It holds no state and is safe for concurrent use.
var grammar = parser.NewParser(
	parser.WithBlockParsers(parser.DefaultBlockParsers()...),
	parser.WithInlineParsers(append(parser.DefaultInlineParsers(),
		util.Prioritized(extension.NewStrikethroughParser(), 500),
		util.Prioritized(extension.NewTaskCheckBoxParser(), 0),
	)...),
	parser.WithParagraphTransformers(
		util.Prioritized(definitions{}, 100),
		util.Prioritized(extension.NewTableParagraphTransformer(), 200),
	),
	parser.WithASTTransformers(util.Prioritized(extension.NewTableASTTransformer(), 0)),
)

// definitions takes link references out of paragraphs, but for those that would
// swallow a footnote.
type definitions struct{}

func (definitions) Transform(node *ast.Paragraph, reader text.Reader, pc parser.Context) {
	lines := node.Lines()
	for i := range lines.Len() {
		seg := lines.At(i)
		if bytes.HasPrefix(bytes.TrimLeft(seg.Value(reader.Source()), " "), []byte("[^")) {
			return
		}
	}
	parser.LinkReferenceParagraphTransformer.Transform(node, reader, pc)
}

// references are the link references of a message, in order. The first definition
// of a label holds.
type references struct {
	byLabel map[string]reference
	count   int
}

type reference struct {
	parser.Reference
	at int
}

// add takes what a block defines.
func (r *references) add(refs []parser.Reference) {
	for _, ref := range refs {
		label := util.ToLinkReference(ref.Label())
		if _, ok := r.byLabel[label]; ok {
			continue
		}
		if r.byLabel == nil {
			r.byLabel = map[string]reference{}
		}
		r.byLabel[label] = reference{ref, r.count}
		r.count++
	}
}

// within is the parser's context for one block: its own references, and those that
// stood before it.
type within struct {
	parser.Context
	refs  *references
	known int // how many of them
}

func (w within) Reference(label string) (parser.Reference, bool) {
	if ref, ok := w.refs.byLabel[label]; ok && ref.at < w.known {
		return ref, true
	}
	return w.Context.Reference(label)
}

// parse gives a block's tree. known is how many of the message's references it may use.
func (r *references) parse(src []byte, known int) (ast.Node, []parser.Reference) {
	pc := within{parser.NewContext(), r, known}
	root := grammar.Parse(text.NewReader(src), parser.WithContext(pc))
	return root, pc.References()
}

// tree is parse without references, for questions about structure.
func tree(src []byte) ast.Node {
	return grammar.Parse(text.NewReader(src))
}

// htmlKind asks goldmark whether a line begins a block of HTML.
func htmlKind(line []byte) (ast.HTMLBlockType, bool) {
	block, ok := tree(line).FirstChild().(*ast.HTMLBlock)
	if !ok {
		return 0, false
	}
	return block.HTMLBlockType, true
}

// beginsBlock asks goldmark whether the last line of src, which begins at at, begins
// a block of the top level.
func beginsBlock(src []byte, at int) bool {
	last := tree(src).LastChild()
	return last != nil && last.Pos() >= at
}

// lastKind asks goldmark what the last block of src is.
func lastKind(src []byte) ast.NodeKind {
	last := tree(src).LastChild()
	if last == nil {
		return 0
	}
	return last.Kind()
}
