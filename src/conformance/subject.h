// A guard under test, as the conformance kit sees it: a space of scratch resources
// (guard/scratch.h) and sessions that write to them (guard/session.h). The kit knows nothing else
// of databases or wires.
#pragma once

#include "guard/scratch.h"
#include "guard/session.h"

namespace pawl::conformance {

using guard::Abilities;
using guard::Ability;
using guard::Admission;
using guard::Advanced;
using guard::Answer;
using guard::Checked;
using guard::Counts;
using guard::Effect;
using guard::Equal;
using guard::Isolation;
using guard::Outcome;
using guard::Policy;
using guard::Session;
using Subject = guard::ScratchSpace;

using guard::begin_write;
using guard::parse_ability;
using guard::parse_answer;
using guard::to_text;
using guard::write_elsewhere;

}  // namespace pawl::conformance
