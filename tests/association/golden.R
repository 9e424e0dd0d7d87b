# R's answers for tests/association/test_matches_r.py.
#
#   python tests/association/golden_inputs.py FOLDER      writes the input tables, gse7390.tsv if NETBIC_DATA is set
#   Rscript tests/association/golden.R FOLDER > tests/association/golden.tsv
#
# Needs R and the package survival (Debian: r-base-core, r-cran-survival).
library(survival)
folder <- commandArgs(trailingOnly = TRUE)[1]
say <- function(data, test, ...) {
  values <- list(...)
  for (name in names(values)) cat(sprintf("%s\t%s\t%s\t%.17g\n", data, test, name, as.numeric(values[[name]])))
}
# fisher.test finds its odds ratios by a search that stops at 1e-4; here it goes on to 1e-13.
exact_search <- new.env(parent = asNamespace("stats"))
exact_search$uniroot <- function(...) stats::uniroot(..., tol = 1e-13, maxiter = 10000)
fisher.test <- stats::fisher.test
environment(fisher.test) <- exact_search
# Limits of the parameter of a noncentral t distribution: those that have the statistic as their 97.5 and 2.5 % quantile.
noncentrality <- function(statistic, df) sapply(c(.975, .025), function(p)
  uniroot(function(ncp) pt(statistic, df, ncp) - p, statistic + c(-5, 5), extendInt = "downX", tol = 1e-13)$root)
tight <- coxph.control(eps = 1e-14, toler.chol = 1e-15, iter.max = 100)

say_cox <- function(data, name, model, column = 1) {
  of_model <- summary(model)
  b <- coef(model)[column]
  se <- sqrt(vcov(model)[column, column])
  say(data, name, score = of_model$sctest["test"], score_p = of_model$sctest["pvalue"],
      wald = model$wald.test, wald_p = 1 - pchisq(model$wald.test, length(coef(model))),
      lr = of_model$logtest["test"], lr_p = of_model$logtest["pvalue"], ratio = exp(b),
      low = exp(b - qnorm(.975) * se), high = exp(b + qnorm(.975) * se), log_likelihood = model$loglik[2])
}

ranks_and_correlations <- function(data, t) {
  for (level in sort(unique(na.omit(t$level)))) {
    own <- t[!is.na(t$level) & !is.na(t$score), ]
    found <- suppressWarnings(wilcox.test(own$score[own$level == level], own$score[own$level != level]))
    say(data, paste0("wilcox.test ", level), statistic = found$statistic, p = found$p.value)
  }
  found <- kruskal.test(t$score, factor(t$level))
  say(data, "kruskal.test", statistic = found$statistic, p = found$p.value)
  found <- cor.test(t$score, t$number)
  say(data, "cor.test pearson", estimate = found$estimate, p = found$p.value,
      low = if (is.null(found$conf.int)) NA else found$conf.int[1],
      high = if (is.null(found$conf.int)) NA else found$conf.int[2])
  exact <- sum(complete.cases(t$score, t$number)) <= 9 && !anyDuplicated(t$number) && !anyDuplicated(t$score)
  found <- suppressWarnings(cor.test(t$score, t$number, method = "spearman", exact = exact))
  say(data, "cor.test spearman", estimate = found$estimate, p = found$p.value)
}

counts <- function(data, t) {
  up <- t$score > median(t$score, na.rm = TRUE)
  for (level in sort(unique(na.omit(t$level)))) {
    found <- fisher.test(table(up, t$level == level)[2:1, 2:1])
    say(data, paste0("fisher.test ", level), p = found$p.value, estimate = found$estimate,
        low = found$conf.int[1], high = found$conf.int[2])
  }
  found <- suppressWarnings(chisq.test(table(up, t$level), correct = FALSE))
  say(data, "chisq.test", statistic = found$statistic, p = found$p.value)
}

survival_times <- function(data, t) {
  up <- t$score > median(t$score, na.rm = TRUE)
  found <- survdiff(Surv(time, event) ~ up, t)
  say(data, "survdiff up", statistic = found$chisq, p = 1 - pchisq(found$chisq, 1))
  fit <- function(formula, ...) coxph(formula, t, control = tight, ...)
  say_cox(data, "coxph score", fit(Surv(time, event) ~ score))
  say_cox(data, "coxph several", fit(Surv(time, event) ~ score + number + covariate))
  # The score test of one column given others: at the maximum of the model without it.
  own <- t[complete.cases(t[c("score", "number", "covariate", "time", "event")]), ]
  null <- coxph(Surv(time, event) ~ number + covariate, own, control = tight)
  at_null <- coxph(Surv(time, event) ~ score + number + covariate, own, init = c(0, coef(null)),
                   control = coxph.control(iter.max = 0))
  full <- coxph(Surv(time, event) ~ score + number + covariate, own, control = tight)
  say(data, "coxph given", score = at_null$score, ratio = exp(coef(full)[1]),
      wald = (coef(full)[1] / sqrt(vcov(full)[1, 1]))^2, lr = 2 * (full$loglik[2] - null$loglik[2]))
  curve <- survfit(Surv(time, event) ~ 1, t)
  # Clopper and Pearson (binom.test) for as many samples as would give Greenwood's variance.
  n <- ifelse(curve$surv < 1, (1 - curve$surv) / (curve$surv * curve$std.err^2), curve$n.risk)
  low <- qbeta(.025, n * curve$surv, n * (1 - curve$surv) + 1)
  high <- ifelse(curve$surv < 1, qbeta(.975, n * curve$surv + 1, n * (1 - curve$surv)), 1)
  for (at in unique(round(seq(1, length(curve$time) - 1, length.out = 5))))
    say(data, paste("survfit", at), time = curve$time[at], survival = curve$surv[at], low = low[at],
        high = high[at], n_at_risk = curve$n.risk[at], n_events = curve$n.event[at])
}

linear_models <- function(data, t) {
  own <- t[complete.cases(t[c("score", "number", "covariate", "level")]), ]
  test <- anova(lm(score ~ number + covariate, own), lm(score ~ number + covariate + factor(level), own))
  say(data, "lm levels", statistic = test$F[2], p = test$"Pr(>F)"[2], eta = test$"Sum of Sq"[2] / test$RSS[1])
  for (level in sort(unique(own$level))) {
    own$inside <- own$level == level
    model <- lm(score ~ inside + number + covariate, own)
    of_model <- coef(summary(model))[2, ]
    limits <- noncentrality(of_model[3], df.residual(model)) * of_model[2] / sigma(model)
    say(data, paste0("lm level ", level), statistic = of_model[3], p = of_model[4],
        difference = of_model[1] / sigma(model), low = limits[1], high = limits[2])
  }
  of_model <- coef(summary(lm(score ~ number + covariate, own)))[2, ]
  say(data, "partial pearson", p = of_model[4], statistic = of_model[3],
      r = cor(resid(lm(score ~ covariate, own)), resid(lm(number ~ covariate, own))))
  ranked <- data.frame(lapply(own[c("score", "number", "covariate")], rank))
  of_model <- coef(summary(lm(score ~ number + covariate, ranked)))[2, ]
  say(data, "partial spearman", p = of_model[4], statistic = of_model[3],
      r = cor(resid(lm(score ~ covariate, ranked)), resid(lm(number ~ covariate, ranked))))
}

cat("data\ttest\tquantity\tvalue\n")
cat(sprintf("R\tversion\t%s\t\n", as.character(getRversion())))
cat(sprintf("survival\tversion\t%s\t\n", as.character(packageVersion("survival"))))
for (data in c("tied", "small", "gse7390")) {
  path <- file.path(folder, paste0(data, ".tsv"))
  if (!file.exists(path)) next
  t <- read.delim(path)
  ranks_and_correlations(data, t)
  counts(data, t)
  if (data != "small") {
    survival_times(data, t)
    linear_models(data, t)
  }
}
