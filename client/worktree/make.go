package worktree

import "context"

// Make adds a worktree and sets it up. When it fails nothing is left of it.
// Errors are those of Plan.Add and Tree.Setup.
func (p *Plan) Make(ctx context.Context, o SetupOptions) (*Tree, error) {
	t, err := p.Add(ctx)
	if err != nil {
		return nil, err
	}
	if err := t.Setup(ctx, o); err != nil {
		return nil, t.Undone(err)
	}
	return t, nil
}
