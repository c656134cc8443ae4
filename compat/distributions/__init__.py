"""``torch.distributions``: probability distributions, their samples, densities, entropies and divergences."""

from compat.distributions import constraints, kl, _kl_pairs, transforms, utils
from compat.distributions.bernoulli import Bernoulli
from compat.distributions.beta import Beta
from compat.distributions.binomial import Binomial
from compat.distributions.categorical import Categorical
from compat.distributions.cauchy import Cauchy
from compat.distributions.chi2 import Chi2
from compat.distributions.constraint_registry import biject_to, transform_to
from compat.distributions.continuous_bernoulli import ContinuousBernoulli
from compat.distributions.dirichlet import Dirichlet
from compat.distributions.distribution import Distribution
from compat.distributions.exp_family import ExponentialFamily
from compat.distributions.exponential import Exponential
from compat.distributions.fishersnedecor import FisherSnedecor
from compat.distributions.gamma import Gamma
from compat.distributions.generalized_pareto import GeneralizedPareto
from compat.distributions.geometric import Geometric
from compat.distributions.gumbel import Gumbel
from compat.distributions.half_cauchy import HalfCauchy
from compat.distributions.half_normal import HalfNormal
from compat.distributions.independent import Independent
from compat.distributions.inverse_gamma import InverseGamma
from compat.distributions.kl import kl_divergence, register_kl
from compat.distributions.kumaraswamy import Kumaraswamy
from compat.distributions.laplace import Laplace
from compat.distributions.lkj_cholesky import LKJCholesky
from compat.distributions.log_normal import LogNormal
from compat.distributions.logistic_normal import LogisticNormal
from compat.distributions.lowrank_multivariate_normal import LowRankMultivariateNormal
from compat.distributions.mixture_same_family import MixtureSameFamily
from compat.distributions.multinomial import Multinomial
from compat.distributions.multivariate_normal import MultivariateNormal
from compat.distributions.negative_binomial import NegativeBinomial
from compat.distributions.normal import Normal
from compat.distributions.one_hot_categorical import OneHotCategorical, OneHotCategoricalStraightThrough
from compat.distributions.pareto import Pareto
from compat.distributions.poisson import Poisson
from compat.distributions.relaxed_bernoulli import RelaxedBernoulli
from compat.distributions.relaxed_categorical import RelaxedOneHotCategorical
from compat.distributions.studentT import StudentT
from compat.distributions.transformed_distribution import TransformedDistribution
from compat.distributions.transforms import *
from compat.distributions.uniform import Uniform
from compat.distributions.von_mises import VonMises
from compat.distributions.weibull import Weibull
from compat.distributions.wishart import Wishart
