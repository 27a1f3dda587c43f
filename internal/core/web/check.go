package web

// Check returns an error if this server does not support searches with the filters of q, so that
// callers can validate a configuration. It ignores q.Texts.
func (s *Service) Check(q Query) error {
	_, engine, err := s.engine(q.Kind)
	if err != nil {
		return err
	}
	q.Texts = []string{"text"}
	return q.complete(engine)
}

// CheckFetch returns an error if page fetching is off on this server.
func (s *Service) CheckFetch() error {
	if s.cfg.Pages == nil {
		return off(FetchName, "fetch_url")
	}
	return nil
}

// engine returns the engine and the service name of a kind of search.
func (s *Service) engine(k Kind) (name string, e Engine, err error) {
	name, e, setting := SearchName, s.cfg.Web, "search_provider"
	if k == People {
		name, e, setting = PeopleName, s.cfg.People, "people_search_provider"
	}
	if e == nil {
		return name, nil, off(name, setting)
	}
	return name, e, nil
}
