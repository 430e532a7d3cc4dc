package reason

// Reasons of a step that has no name for what went wrong.
const (
	StepFailed      ID = "STEP_FAILED"
	StepTimeout     ID = "STEP_TIMEOUT"
	StepInterrupted ID = "STEP_INTERRUPTED"
)

var stepReasons = []Reason{
	{StepFailed, 80,
		"A command of a step failed, for a reason that has no name of its own. The message has its last words.",
		"look at the output above; the same command carries on from this step"},
	{StepTimeout, 81,
		"A step was not done in its time and was ended, with all its processes.",
		"look at the output above; the same command carries on from this step"},
	{StepInterrupted, 82,
		"The host went down, or somebody killed the unit, while the step ran. kgpu begins such a step once more by itself, and says this if it happens again, or if nobody was there to do so.",
		"the host went down during the step; the same command carries on"},
}
