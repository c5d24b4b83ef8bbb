package event

// cellCompletedV1 is version 1 of cell.completed, from when a cell could ask for
// nothing.
type cellCompletedV1 struct {
	Cell           string     `json:"cell"`
	Execution      string     `json:"execution"`
	Generation     string     `json:"generation"`
	Status         CellStatus `json:"status"`
	Cause          *Cause     `json:"cause"`
	Output         []Output   `json:"output"`
	TruncatedBytes int64      `json:"truncated_bytes"`
	BytesTotal     int64      `json:"bytes_total"`
	Error          *string    `json:"error"`
	Artifacts      []Artifact `json:"artifacts"`
	Spool          *Spool     `json:"spool"`
	NamesAdded     []string   `json:"names_added"`
	NamesRemoved   []string   `json:"names_removed"`
	ElapsedMS      int64      `json:"elapsed_ms"`
	QueuedMS       int64      `json:"queued_ms"`
	CPUMS          *int64     `json:"cpu_ms"`
}

func (cellCompletedV1) Kind() Kind { return CellCompleted }
func (cellCompletedV1) sealed()    {}

func (c cellCompletedV1) lift() Payload {
	return CellCompletedV2{
		Cell: c.Cell, Execution: c.Execution, Generation: c.Generation, Status: c.Status, Cause: c.Cause, Output: c.Output,
		TruncatedBytes: c.TruncatedBytes, BytesTotal: c.BytesTotal, Error: c.Error, Artifacts: c.Artifacts, Spool: c.Spool,
		NamesAdded: c.NamesAdded, NamesRemoved: c.NamesRemoved, Effects: []string{}, ElapsedMS: c.ElapsedMS,
		QueuedMS: c.QueuedMS, CPUMS: c.CPUMS,
	}
}

// older is a version that is no longer written.
type older interface {
	Payload
	lift() Payload
}

func lifted[P older](b []byte) (Payload, error) {
	p, err := strict[P](b)
	if err != nil {
		return nil, err
	}
	return p.(P).lift(), nil
}
