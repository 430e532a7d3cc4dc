package plan

// Split parts the graph into what has to be done now and what is done once the cards are proven: the cluster serves
// without it.
func (g *Graph) Split() (now, later *Graph) {
	now, later = &Graph{windows: g.windows}, &Graph{windows: g.windows}
	for _, s := range g.Steps {
		if s.Later {
			later.Steps = append(later.Steps, s)
		} else {
			now.Steps = append(now.Steps, s)
		}
	}
	return now, later
}
