#include "sim/users.h"

#include <fmt/format.h>

#include <string>

namespace pawl::sim {

using std::chrono::seconds;

Users::Users(const Plan& plan, const Surroundings& around, const std::function<Rate()>& rate,
             PlainNode::WaitsOn waits_on)
    : plan_(plan),
      around_(around),
      operator_(around.world, around.network, rate(), around.workload.locks, around.history) {
  World& world = around_.world;
  for (int i = 1; i <= plan.clients; ++i) {
    clients_.push_back(std::make_unique<ClientNode>(world, around_.network, around_.guard, i,
                                                    rate(), around_.workload, around_.history));
  }
  for (int i = 1; i <= plan.plain; ++i) {
    plain_.push_back(std::make_unique<PlainNode>(world, around_.network, around_.guard, 100 + i,
                                                 rate(), around_.workload, around_.history,
                                                 waits_on));
  }
  for (int i = 1; i <= plan.observers; ++i) {
    observers_.push_back(std::make_unique<ObserverNode>(world, around_.network, i, rate(),
                                                        around_.workload.election, around_.watch,
                                                        around_.history, around_.faults));
  }
}

void Users::begin() {
  for (auto& client : clients_) client->begin();
  for (auto& client : plain_) client->begin();
  for (auto& observer : observers_) observer->begin();
  if (plan_.has(Trouble::kOperator)) operator_.begin();
}

void Users::wind_down() {
  operator_.wind_down();
  for (auto& client : clients_) client->wind_down();
  for (auto& client : plain_) client->wind_down();
  for (auto& observer : observers_) observer->wind_down();
  around_.world.at(storm_end() + seconds(20),
                   [this] { operator_.lead(around_.workload.election); });
  around_.world.at(storm_end() + Millis(23'500), [this] {
    if (operator_.leads_with().value == 0)
      around_.faults.push_back("P7: all is healed, and no candidate can be elected");
    check_observers(operator_.leads_with());
    operator_.resign();
  });
}

void Users::check_observers(Token leader) {
  if (around_.history.demand == Demand::kTokensOnly) return;
  for (const auto& observer : observers_) {
    if (observer->leader() == leader) continue;
    around_.faults.push_back(
        fmt::format("EL: all is quiet, token {} leads (0: none), and observer {} received {}",
                    leader.value, observer->number(),
                    observer->leader() ? std::to_string(observer->leader()->value) : "nothing"));
  }
}

void Users::check_all_are_idle() {
  const auto check = [this](const auto& clients) {
    for (const auto& client : clients) {
      if (!client->idle())
        around_.faults.push_back(fmt::format("P7: all is healed, and still {}", client->state()));
    }
  };
  check(clients_);
  check(plain_);
}

void Users::count(Verdict& verdict) const {
  for (const auto& client : clients_) verdict.grants += client->grants();
  for (const auto& client : plain_) verdict.plain_grants += client->grants();
  verdict.grants += verdict.plain_grants;
  for (const Leading& leading : around_.history.leaders)
    verdict.leaders += leading.token.value != 0 ? 1 : 0;
  for (const Raise& raise : around_.history.raises)
    verdict.raises += raise.returned != kOpen ? 1 : 0;
  verdict.effects = around_.history.effects.size();
}

}  // namespace pawl::sim
