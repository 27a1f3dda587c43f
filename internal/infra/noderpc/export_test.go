package noderpc

// SetID makes c use the handles of another client.
func (c *Client) SetID(of *Client) { c.id = of.id }

// NewFake returns a fake node.
var NewFake = newFake

// OpenHandles returns the number of open handles.
func (n *fakeNode) OpenHandles() int { return len(n.open()) }
