package app

import (
	"github.com/atoll-run/atoll/internal/agent/loop"
	"github.com/atoll-run/atoll/internal/agent/mcptool"
	"github.com/atoll-run/atoll/internal/app/config"
	"github.com/atoll-run/atoll/internal/core/model"
	"github.com/atoll-run/atoll/internal/core/usage"
	"github.com/atoll-run/atoll/internal/core/web"
)

// prices are what use costs.
func (p *process) prices() usage.Prices {
	cfg := p.cfg.Settings
	return usage.Prices{
		CPUMinute: cfg.PriceCPU, GiBMinute: cfg.PriceGiB, GiBOut: cfg.PriceOut, Call: cfg.PriceCall,
		Calls: map[string]float64{web.SearchName: cfg.PriceSearch, web.PeopleName: cfg.PriceSearch, web.FetchName: cfg.PriceFetch, mcptool.Handler: 0},
	}
}

// runPrices are what runs are charged in money beside their models' tokens.
func (p *process) runPrices() loop.Prices {
	cfg := p.cfg.Settings
	tools := map[string]model.Money{}
	for tool, text := range cfg.PriceTools {
		dollars, _ := config.ParseToolPrice(text) // it was checked
		tools[tool] = usage.MoneyOf(dollars)
	}
	return loop.Prices{Tools: tools, Window: usage.MoneyOf(cfg.PriceWindow)}
}
