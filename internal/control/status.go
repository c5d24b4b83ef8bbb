package control

import (
	"net/http"

	"github.com/reeve-run/reeve/fault"
)

// 499 is nginx's number for a client that went away; net/http has no name for it.
const statusClientGone = 499

var statuses = map[fault.Code]int{
	fault.InvalidRequest:  http.StatusBadRequest,
	fault.Usage:           http.StatusBadRequest,
	fault.UnknownMethod:   http.StatusNotFound,
	fault.NotFound:        http.StatusNotFound,
	fault.Unauthorized:    http.StatusUnauthorized,
	fault.Denied:          http.StatusForbidden,
	fault.SecretDetected:  http.StatusForbidden,
	fault.Ambiguous:       http.StatusConflict,
	fault.Conflict:        http.StatusConflict,
	fault.ScopeExpired:    http.StatusConflict,
	fault.StaleEpoch:      http.StatusConflict,
	fault.StaleGeneration: http.StatusConflict,
	fault.Altered:         http.StatusConflict,
	fault.Truncated:       http.StatusConflict,
	fault.Findings:        http.StatusConflict,
	fault.LimitExceeded:   http.StatusRequestEntityTooLarge,
	fault.CellFailed:      http.StatusUnprocessableEntity,
	fault.Held:            http.StatusLocked,
	fault.RequestLimit:    http.StatusTooManyRequests,
	fault.Cancelled:       statusClientGone,
	fault.Internal:        http.StatusInternalServerError,
	fault.Unknown:         http.StatusInternalServerError,
	fault.WorkerLost:      http.StatusBadGateway,
	fault.Unavailable:     http.StatusServiceUnavailable,
	fault.GateUnavailable: http.StatusServiceUnavailable,
	fault.AuditObligation: http.StatusServiceUnavailable,
	fault.Timeout:         http.StatusGatewayTimeout,
	fault.StoreFull:       http.StatusInsufficientStorage,
}

// HTTPStatus is the status that carries code. Clients decide by the code, never by
// the status.
func HTTPStatus(code fault.Code) int {
	if n, ok := statuses[code]; ok {
		return n
	}
	return http.StatusInternalServerError
}
