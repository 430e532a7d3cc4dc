package prepare

import "context"

// gpu makes what hosts with NVIDIA cards install and run: the stand-ins for NVIDIA's driver, NVIDIA's container software, and the
// image of a notebook.
func (p *preparer) gpu(ctx context.Context) error {
	if !p.cards {
		return nil
	}
	if err := p.nvidiaDrivers(ctx); err != nil {
		return err
	}
	if p.noble {
		if err := p.do(ctx, p.kernelUpdate()); err != nil {
			return err
		}
	}
	if err := p.nvidiaToolkit(ctx); err != nil {
		return err
	}
	return p.jupyter(ctx)
}
