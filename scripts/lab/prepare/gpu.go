package prepare

import "context"

// gpu makes what hosts with NVIDIA cards install and run: the stand-ins for NVIDIA's driver, and NVIDIA's container software.
func (p *preparer) gpu(ctx context.Context) error {
	if !p.cards {
		return nil
	}
	if err := p.nvidiaDrivers(ctx); err != nil {
		return err
	}
	return p.nvidiaToolkit(ctx)
}
