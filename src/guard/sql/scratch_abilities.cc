#include "guard/sql/scratch_abilities.h"

#include "guard/sql/scratch.h"

namespace pawl::guard {
namespace {

using enum Ability;

constexpr std::string_view kNoKeys = "this form has one fence and no keys";
constexpr std::string_view kUnwatched = "in this form only writers who ask are judged";

// Of a form, in every database.
std::vector<Lack> lacks_of(const SqlTraits& traits, Form form) {
  std::vector<Lack> lacks{{kOperationLast, "it remembers each operation of a token"}};
  const auto add = [&](Abilities abilities, std::string_view why) {
    for (const Ability ability : abilities.list()) lacks.push_back({ability, why});
  };
  if (form == Form::kAdmit || form == Form::kKeyed) {
    add({kTokenless, kRequireToken, kRemove, kElsewhere, kEnclosed}, kUnwatched);
    add(traits.watched, "tokens are numbers here, and have no spelling");
  }
  if (form == Form::kAdmit || form == Form::kTable) add({kSpellings, kMoves}, kNoKeys);
  if (form == Form::kKeyed) {
    add({kSpellings}, "writers spell the keys, which are compared byte by byte");
    add({kMoves}, kUnwatched);
  }
  if (form == Form::kRow || form == Form::kBy)
    add({kEqualOnce, kEqualRefuse},
        "where one write may touch many resources, an equal token is no reason to refuse it");
  if (form == Form::kBy && !traits.loose_by)
    add({kSpellings}, "the value of an expression is compared byte by byte");
  if (form != Form::kRow)
    add({kUnreachable}, "fences are in tables of the guard, where nothing of the user's stands");
  return lacks;
}

constexpr Abilities kEverywhere{kTokenless,   kRequireToken, kRemove,    kElsewhere, kEqualOnce,
                                kEqualRefuse, kMoves,        kSpellings, kRehearsal};

}  // namespace

ScratchAbilities abilities_of(const SqlTraits& traits, const std::vector<Lack>& lacks_here,
                              Form form) {
  ScratchAbilities found;
  found.abilities = kSqlAbilities;
  found.abilities.add(kEverywhere);
  found.abilities.add(traits.abilities);
  found.abilities.add(traits.watched);
  const auto take_away = [&](const Lack& lack) {
    found.abilities = found.abilities.without({lack.ability});
    found.lacks.emplace(lack.ability, lack.why);
  };
  for (const Lack& lack : traits.lacks) take_away(lack);
  for (const Lack& lack : lacks_here) take_away(lack);
  for (const Lack& lack : lacks_of(traits, form)) take_away(lack);
  return found;
}

}  // namespace pawl::guard
