package service

import "net/http"

// Ready answers whoever sends requests here, such as a load balancer: 503 as soon as the service is ending, else what the
// handler says of the hosts.
func (s *Service) Ready(hosts http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s.ending.Load() {
			_ = write(w, problem(http.StatusServiceUnavailable, "the service is ending")) // if it fails, whoever asked is gone
			return
		}
		hosts.ServeHTTP(w, r)
	})
}
