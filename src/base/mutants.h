#pragma once
#define PAWL_MUTANT(name) false
